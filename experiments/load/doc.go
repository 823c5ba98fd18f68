// Package load puts load on a server that speaks OpenAI's API, this project's or any other, and measures what
// its clients see.
//
// Requests are sent in a closed loop (so many in flight, the next as one ends) or an open one (arrivals
// planned beforehand, by the laws of package workload). In an open loop all times count from the planned
// arrival, also where the generator itself had to wait for a place: a server that stalls is not measured by
// the requests that it kept from being sent.
//
// The metrics are those of package meter, which gets the requests as if they were turns of a scheduler:
// sent is admitted, a chunk with text or tokens is a commit of its tokens. The window of measurement is the
// one of every other run: it opens when warm-up requests have left; requests sent before, and tokens that
// came before, are left out. The time between chunks has a name of its own, because it is not the time
// between tokens: a server may put several into a chunk, and a chunk is late by the way it has gone.
//
// Only a whole answer is finished. Everything else is counted by what went wrong, and no time of it is used.
package load
