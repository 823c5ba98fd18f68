package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"tokenrouter/core"
)

// failure is what a client is told of a request that is refused or has failed: the error object of OpenAI's
// API, with its HTTP status.
type failure struct {
	status     int
	retryAfter time.Duration // 0: none

	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// Error implements error.
func (f *failure) Error() string { return f.Message }

// invalid refuses a field.
func invalid(param, format string, args ...any) *failure {
	f := &failure{status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...),
		Type: "invalid_request_error"}
	if param != "" {
		f.Param = &param
	}
	return f
}

func fail(status int, kind, code, format string, args ...any) *failure {
	return &failure{status: status, Message: fmt.Sprintf(format, args...), Type: kind, Code: &code}
}

// unavailable refuses all requests: it says after which time it is worth to try again, here or elsewhere.
func unavailable(retryAfter time.Duration, code, format string, args ...any) *failure {
	f := fail(http.StatusServiceUnavailable, "server_error", code, format, args...)
	f.retryAfter = retryAfter
	return f
}

// frame is the document that has the failure.
func (f *failure) frame() []byte {
	frame, err := json.Marshal(struct {
		Error *failure `json:"error"`
	}{f})
	if err != nil {
		panic(fmt.Sprint("serve: ", err)) // text and numbers
	}
	return frame
}

// write answers with the failure.
func (f *failure) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if f.retryAfter > 0 {
		seconds := int((f.retryAfter + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	w.WriteHeader(f.status)
	_, _ = w.Write(append(f.frame(), '\n')) // who has gone needs no answer
}

// failureOf is what the end of a choice means to its client; nil for one that is whole.
func failureOf(l *core.Leave, models []string) *failure {
	at := ""
	if l.Model >= 0 && l.Model < len(models) {
		at = " at model " + models[l.Model]
	}
	switch {
	case l.Outcome == core.Finished:
		return nil
	case l.Reason == core.Full:
		f := fail(http.StatusTooManyRequests, "rate_limit_error", "queue_full", "all places are taken, try again")
		f.retryAfter = time.Second
		return f
	case l.Reason == core.PoolTooSmall || l.Reason == core.TooLong:
		return invalid("max_tokens", "prompt and answer can never have room in memory%s: %s", at, l.Reason)
	case l.Reason == core.TimedOut:
		return fail(http.StatusGatewayTimeout, "timeout_error", "time_limit",
			"the request took longer than it may, after %d tokens", l.Tokens)
	case l.Outcome == core.CancelledOutcome:
		return unavailable(time.Second, "stopped", "the server ends: %s after %d tokens", l.Reason, l.Tokens)
	default:
		return fail(http.StatusInternalServerError, "server_error", code(l.Reason), "%s%s after %d tokens",
			l.Reason, at, l.Tokens)
	}
}

// code is a reason as a word.
func code(r core.Reason) string {
	word := []byte(r.String())
	for i := range word {
		if word[i] == ' ' {
			word[i] = '_'
		}
	}
	return string(word)
}
