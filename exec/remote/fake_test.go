package remote_test

import (
	"context"
	"net/http"
	"testing"

	"tokenrouter/exec/remote"
	"tokenrouter/exec/remote/remotetest"
	"tokenrouter/exec/serve/servetest"
)

// within serves a handler over connections in memory, so that time may be virtual.
func within(t *testing.T, handler http.Handler) *http.Transport {
	pipes := servetest.NewPipes()
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(pipes) }()
	transport := &http.Transport{MaxIdleConnsPerHost: 100, DialContext: pipes.Dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return transport
}

// open is a client of the fake.
func open(t *testing.T, f *remotetest.Engine, change func(*remote.Config)) *remote.Client {
	t.Helper()
	c := remote.Config{
		Name: "large", Engine: f.Kind, URL: "http://engine", Vocab: len(f.Logits([]int32{0})),
		Transport: within(t, f),
	}
	if change != nil {
		change(&c)
	}
	client, err := remote.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
