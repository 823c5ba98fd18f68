package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// chat answers /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	s.complete(w, r, s.readChat, "chatcmpl-")
}

// completion answers /v1/completions.
func (s *Server) completion(w http.ResponseWriter, r *http.Request) {
	s.complete(w, r, s.readCompletion, "cmpl-")
}

// complete answers a request of either kind.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, read func([]byte) (*ask, *failure),
	prefix string) {
	arrived := time.Now()
	body, failed := s.body(w, r)
	if failed != nil {
		failed.write(w)
		return
	}
	a, failed := read(body)
	if failed != nil {
		failed.write(w)
		return
	}
	c, failed := s.begin(r.Context(), a, prefix+w.Header().Get(requestIDHeader), arrived)
	if failed != nil {
		failed.write(w)
		return
	}
	defer c.close()
	if a.stream {
		c.streamed(w, r)
	} else {
		c.answered(w, r)
	}
}

// body reads a request's body within the limits of size and time.
func (s *Server) body(w http.ResponseWriter, r *http.Request) ([]byte, *failure) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.c.ReadTimeout)) // tests' writers have none
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.c.BodyBytesMax))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, fail(http.StatusRequestEntityTooLarge, "invalid_request_error", "too_large",
			"the body has more than %d bytes", s.c.BodyBytesMax)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fail(http.StatusBadRequest, "invalid_request_error", "unread",
			"the body was not read: it did not come within %v", s.c.ReadTimeout)
	case err != nil: // whose text may have addresses of this machine
		return nil, fail(http.StatusBadRequest, "invalid_request_error", "unread",
			"the body was not read: it broke off")
	}
	_ = control.SetReadDeadline(time.Time{})
	return data, nil
}

// answered waits for the whole answer and writes it.
func (c *call) answered(w http.ResponseWriter, r *http.Request) {
	for !c.whole() {
		if _, here := c.next(r.Context(), 0); !here {
			errGone.write(w)
			return
		}
	}
	if c.failed != nil {
		c.failed.write(w)
		return
	}
	object := "text_completion"
	if c.ask.chat {
		object = "chat.completion"
	}
	d := c.document(object)
	for i, ch := range c.choices {
		d.Choices = append(d.Choices, c.part(i, ch.answer.Text(), ch.kept, ch.answer.Finish()))
	}
	d.Usage = c.usage()
	if c.ask.ids {
		d.PromptIDs = c.ask.prompts
	}
	c.s.writeJSON(w, http.StatusOK, d)
}

// writeJSON writes a document within the time that a client may take for it.
func (s *Server) writeJSON(w http.ResponseWriter, status int, d any) {
	text, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprint("serve: ", err)) // text and finite numbers
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.c.WriteTimeout))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // who has gone needs no answer
}

// stream writes the frames of an answer.
type stream struct {
	c       *call
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
	object  string
}

// streamed writes news as they come.
func (c *call) streamed(w http.ResponseWriter, r *http.Request) {
	s := &stream{c: c, w: w, control: http.NewResponseController(w), object: "text_completion"}
	if c.ask.chat {
		s.object = "chat.completion.chunk"
	}
	for !c.whole() {
		list, here := c.next(r.Context(), c.s.c.KeepAlive)
		if !here {
			if !s.begun {
				errGone.write(w)
			}
			return
		}
		if c.failed != nil {
			s.fail(c.failed)
			return
		}
		if err := s.tell(list); err != nil {
			return // the client has gone, or takes nothing: close cancels
		}
	}
	if err := s.end(); err != nil {
		c.s.c.Log.Debug("the end of a stream was not taken", "id", c.id, "error", err)
	}
}

// fail ends the stream with an error: as the whole answer, where nothing is out yet.
func (s *stream) fail(f *failure) {
	if !s.begun {
		f.write(s.w)
		return
	}
	_ = s.frame(f.frame()) // who has gone needs no answer
	_ = s.control.Flush()
}

// begin writes the header and, of a chat, who speaks.
func (s *stream) begin() error {
	s.begun = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // of proxies
	s.w.WriteHeader(http.StatusOK)
	if !s.c.ask.chat {
		return nil
	}
	for i := range s.c.choices {
		empty := ""
		p := part{Index: i, Delta: &delta{Role: "assistant", Content: &empty}}
		if err := s.chunk(p); err != nil {
			return err
		}
	}
	return nil
}

// tell writes news, a chunk each; without any, a comment that keeps the connection.
func (s *stream) tell(list []news) error {
	if !s.begun {
		if err := s.begin(); err != nil {
			return err
		}
	}
	if len(list) == 0 {
		if err := s.write([]byte(": waiting\n\n")); err != nil {
			return err
		}
	}
	for _, n := range list {
		if n.text != "" || len(n.tokens) > 0 {
			if err := s.chunk(s.c.part(n.choice, n.text, n.tokens, "")); err != nil {
				return err
			}
		}
		if n.finish != "" {
			last := s.c.part(n.choice, "", nil, n.finish)
			last.LogProbs = nil
			if err := s.chunk(last); err != nil {
				return err
			}
		}
	}
	return s.control.Flush()
}

// end writes what comes after the last choice.
func (s *stream) end() error {
	if s.c.ask.usage {
		d := s.c.document(s.object)
		d.Usage = s.c.usage()
		if err := s.document(d); err != nil {
			return err
		}
	}
	if err := s.frame([]byte("[DONE]")); err != nil {
		return err
	}
	return s.control.Flush()
}

func (s *stream) chunk(p part) error {
	d := s.c.document(s.object)
	d.Choices = append(d.Choices, p)
	if s.c.ask.usage {
		d.Usage = json.RawMessage("null")
	}
	return s.document(d)
}

func (s *stream) document(d *document) error {
	text, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprint("serve: ", err)) // text and finite numbers
	}
	return s.frame(text)
}

func (s *stream) frame(data []byte) error {
	return s.write(append(append([]byte("data: "), data...), "\n\n"...))
}

// write gives the client WriteTimeout for each piece: there is no limit on the whole.
func (s *stream) write(data []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.c.s.c.WriteTimeout)) // tests' writers have none
	_, err := s.w.Write(data)
	return err
}
