// Package chain computes the exact steady throughput of delayed batching across models that exchange
// requests.
package chain
