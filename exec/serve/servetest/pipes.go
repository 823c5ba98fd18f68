// Package servetest helps tests of HTTP servers and their clients.
package servetest

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Pipes is a listener in memory, so that a server and its clients live on the virtual clock of
// testing/synctest.
type Pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

// NewPipes returns a listener that nobody calls yet.
func NewPipes() *Pipes { return &Pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

// Accept implements net.Listener.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *Pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr implements net.Listener.
func (p *Pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

// Dial connects to the listener, whatever the address (http.Transport.DialContext).
func (p *Pipes) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Client returns a client of whoever serves on the listener.
func (p *Pipes) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: p.Dial}}
}
