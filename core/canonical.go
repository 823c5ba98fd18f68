package core

// CompareEvents orders the events of one turn as Turn folds them in: negative if a comes
// before b, 0 if their order makes no difference. A log that sorts by it, stably, does not
// depend on the order in which a driver collected them (I9).
func CompareEvents(a, b *Event) int { return compareEvents(a, b) }
