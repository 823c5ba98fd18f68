// Package serve is an OpenAI-compatible HTTP front of an exec.Loop: /v1/models, /v1/chat/completions,
// /v1/completions, /tokenize, /health, /metrics and /openapi.json. Several models answer under one name, and
// each by its own under that of the model. openapi.json has the whole contract.
//
// A field of a request is honoured, or the request is refused with 400 and the field's name in param. What is
// null or empty is as if it were not there, because clients send such fields unasked.
//
// # Life of a request
//
// A Server takes no more choices (n of one request are n choices) than Config.Slots: what comes beyond is
// refused with 429 and Retry-After; what comes while the server drains or cannot go on, with 503. Each choice
// is a request of the loop. Its tokens are kept until the handler has written them, so that a client who
// reads slowly holds up nobody; one who takes nothing for Config.WriteTimeout is cut off. A client who
// leaves, at whatever stage, and a request that takes longer than it may, are cancelled in the loop, which
// frees queue places and KV at the next completion of a pass. A place is free again when the loop says that
// the choice has left.
//
// Nothing is written before the first token or the end has come, so that what is refused late still has its
// status. A failure in the middle of a stream is an error frame, and the stream ends without [DONE].
package serve
