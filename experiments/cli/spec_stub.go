package cli

func (f *predictFlags) fromSpec(path string) ([]question, error) { return nil, misuse("no specs yet") }
