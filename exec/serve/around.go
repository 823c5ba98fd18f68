package serve

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
)

// requestIDHeader names a request, of the client's choice or the server's.
const requestIDHeader = "X-Request-Id"

// around is what every request passes: its name, CORS, counts, and the end of a handler's panic.
func (s *Server) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted := &counted{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil {
				s.c.Log.Error("a handler panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				if counted.status == 0 {
					fail(http.StatusInternalServerError, "server_error", "internal", "internal error").write(counted)
				}
			}
			s.metrics.answered(r, counted.status)
		}()
		s.share(counted, r)
		id := r.Header.Get(requestIDHeader)
		if id == "" {
			const idBytes = 12
			var random [idBytes]byte
			_, _ = rand.Read(random[:]) // which never fails
			id = hex.EncodeToString(random[:])
		} else if err := checkRequestID(id); err != nil {
			invalid(requestIDHeader, "header %s: %v", requestIDHeader, err).write(counted)
			return
		}
		counted.Header().Set(requestIDHeader, id)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			counted.WriteHeader(http.StatusNoContent) // the browser asks; the headers are the answer
			return
		}
		next.ServeHTTP(counted, r)
	})
}

// share lets pages of other hosts in (CORS).
func (s *Server) share(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	if origin == "" || len(s.c.Origins) == 0 {
		return
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if !slices.Contains(s.c.Origins, origin) && !slices.Contains(s.c.Origins, "*") {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, "+requestIDHeader+", *")
	h.Set("Access-Control-Expose-Headers", requestIDHeader+", Retry-After")
	h.Set("Access-Control-Max-Age", "600")
}

// guarded wants the API key.
func (s *Server) guarded(next http.HandlerFunc) http.Handler {
	if s.c.APIKey == "" {
		return next
	}
	want := sha256.Sum256([]byte(s.c.APIKey)) // of equal length, so that nothing is told of the key's
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		given := sha256.Sum256([]byte(key))
		if !ok || subtle.ConstantTimeCompare(given[:], want[:]) == 0 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			fail(http.StatusUnauthorized, "authentication_error", "invalid_api_key",
				"want the API key in the header Authorization: Bearer KEY").write(w)
			return
		}
		next(w, r)
	})
}

// counted keeps the status of an answer. It lets http.ResponseController through.
type counted struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (c *counted) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (c *counted) Write(data []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	return c.ResponseWriter.Write(data)
}

// Unwrap is for http.ResponseController.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }
