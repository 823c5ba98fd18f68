package serve

import (
	_ "embed"
	"net/http"
	"slices"
	"time"

	"tokenrouter/core/chain"
	"tokenrouter/exec/model/tokenizer"
)

// modelDocument is a model as /v1/models lists it.
type modelDocument struct {
	ID         string   `json:"id"`
	Object     string   `json:"object"`
	Created    int64    `json:"created"`
	Owner      string   `json:"owned_by"`
	ContextMax int      `json:"max_model_len"`
	Members    []string `json:"members,omitempty"` // models that answer together under the name
}

func (s *Server) modelDocument(name string) modelDocument {
	d := modelDocument{
		ID: name, Object: "model", Created: s.started.Unix(), Owner: "tokenrouter",
		ContextMax: s.c.Core.ContextMax,
	}
	if name == s.c.Name && len(s.c.Models) > 1 {
		d.Members = s.c.Models
	}
	return d
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	list := []modelDocument{}
	for _, name := range s.names() {
		list = append(list, s.modelDocument(name))
	}
	s.writeJSON(w, http.StatusOK, struct {
		Object string          `json:"object"`
		Data   []modelDocument `json:"data"`
	}{"list", list})
}

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("model")
	if !slices.Contains(s.names(), name) {
		f := fail(http.StatusNotFound, "invalid_request_error", "model_not_found",
			"there is no model %q, want one of %q", name, s.names())
		f.write(w)
		return
	}
	s.writeJSON(w, http.StatusOK, s.modelDocument(name))
}

// tokenize answers /tokenize: the ids of a text, or of a conversation as a prompt.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	body, failed := s.body(w, r)
	if failed == nil {
		var f *fields
		if f, failed = readFields(body); failed == nil {
			s.tokenized(w, f)
			return
		}
	}
	failed.write(w)
}

func (s *Server) tokenized(w http.ResponseWriter, f *fields) {
	var ids []int32
	_, _ = take[string](f, "model", "a name") // all have the same tokens
	_, isChat := f.raw["messages"]
	if isChat {
		ids = s.conversation(f)
	} else {
		text, _ := take[string](f, "prompt", "a string")
		special := true
		if add, set := take[bool](f, "add_special_tokens", "true or false"); set {
			special = add
		}
		ids = s.c.Tokenizer.Encode(text, tokenizer.Options{AddSpecial: special})
	}
	texts := boolean(f, "return_token_strs")
	if failed := f.rest(); failed != nil {
		failed.write(w)
		return
	}
	d := struct {
		Count      int      `json:"count"`
		ContextMax int      `json:"max_model_len"`
		Tokens     []int32  `json:"tokens"`
		Texts      []string `json:"token_strs,omitempty"`
	}{len(ids), s.c.Core.ContextMax, append([]int32{}, ids...), nil}
	if texts {
		for _, id := range ids {
			d.Texts = append(d.Texts, shown(s.c.Tokenizer.Bytes(id)))
		}
	}
	s.writeJSON(w, http.StatusOK, d)
}

// healthDocument is what /health shows.
type healthDocument struct {
	Status  string `json:"status"` // ok, draining or failed
	Reason  string `json:"reason,omitempty"`
	Live    int    `json:"live"`
	Waiting int    `json:"waiting"`
	Places  int    `json:"places"`
	Taken   int    `json:"places_taken"`
	UptimeS int64  `json:"uptime_s"`

	Models []healthModel `json:"models"`
	Plan   *healthPlan   `json:"plan,omitempty"`
}

type healthModel struct {
	Name      string `json:"name"`
	Queued    int    `json:"queued"`
	PagesHeld int    `json:"kv_pages_held"`
	Pages     int    `json:"kv_pages"`
	Threshold int    `json:"threshold"` // in force
}

// healthPlan is what thresholds are planned with.
type healthPlan struct {
	Planned  bool        `json:"planned"` // false: nothing is planned for the present N yet
	RateTokS float64     `json:"throughput_tok_s,omitempty"`
	Routing  [][]float64 `json:"routing,omitempty"`
	StepNs   []int64     `json:"step_ns,omitempty"` // of one row
	RowNs    []int64     `json:"row_ns,omitempty"`  // of each further row
	AgeS     float64     `json:"age_s,omitempty"`
	Error    string      `json:"error,omitempty"`
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	n := s.metrics.copy()
	taken, closed := s.places.now()
	d := healthDocument{
		Status: "ok", Live: n.live, Waiting: n.waiting, Places: s.c.Slots, Taken: taken,
		UptimeS: int64(time.Since(s.started).Seconds()),
	}
	status := http.StatusOK
	if closed != nil {
		d.Status, d.Reason, status = "failed", closed.Message, http.StatusServiceUnavailable
		if *closed.Code == "draining" {
			d.Status = "draining"
		}
	}
	plan := s.plan(n.live)
	for i, name := range s.c.Models {
		d.Models = append(d.Models, healthModel{name, n.queued[i], n.pages[i], s.c.Core.Models[i].Pages,
			plan.Thresholds[i]})
	}
	if s.c.Planner != nil {
		p := &healthPlan{Planned: plan.Planned, RateTokS: plan.RateTokS}
		if f := plan.Figures; f != nil {
			p.Routing = f.Routing
			p.StepNs, p.RowNs = times(f.Step)
		}
		if !plan.At.IsZero() {
			p.AgeS = time.Since(plan.At).Seconds()
		}
		if plan.Err != nil {
			p.Error = plan.Err.Error()
		}
		d.Plan = p
	}
	s.writeJSON(w, status, d)
}

func times(steps []chain.StepTime) (one, row []int64) {
	for _, step := range steps {
		one, row = append(one, step.BaseNs+step.PerRowNs), append(row, step.PerRowNs)
	}
	return one, row
}

//go:embed openapi.json
var openAPI []byte

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI) // who has gone needs no answer
}
