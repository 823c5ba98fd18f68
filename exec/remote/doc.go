// Package remote makes devices of ordinary engines that are reached over HTTP: llama.cpp's server, vLLM and
// SGLang. Token ids go in, one token comes out, with log-probabilities; an engine keeps its own KV under its
// prefix cache, so that a call computes the tokens that are new. The scheduler's pages only bound requests.
//
// A Client is one engine, opened once: it is asked what it serves, and its vocabulary is compared with that
// of the models which it shares ids with. A Device feeds the rows of a pass to it, each a call of its own,
// all at the same time; the engine batches them as it likes. A call that fails ends its own row.
//
// Refusal says which routing algorithm can run with which model on which engine.
package remote
