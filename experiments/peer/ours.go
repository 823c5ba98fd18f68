package main

import (
	"context"

	"tokenrouter/exec/native"
)

// ours is a model on our device.
type ours struct {
	model *native.Model
	pages int // of a request
}

// load puts the model on the device, with room for every work and contexts in KV.
func load(d *native.Device, c native.Config, pageTokens int) (*ours, error) {
	o := &ours{pages: (promptTokens + pageTokens - 1) / pageTokens}
	m, err := d.Load(context.Background(), native.Load{
		Name: "ours", Config: c, Source: &native.Random{Config: c.Model, Seed: seed},
		Limits: native.Limits{
			Slots: requestsMax, Pages: requestsMax * o.pages, PageTokens: pageTokens, ContextMax: promptTokens,
			RowsMax: promptTokens, RequestsMax: requestsMax,
		},
	})
	if err != nil {
		return nil, err
	}
	o.model = m
	return o, o.fill()
}

// fill feeds every request its context. A prompt later writes the same there.
func (o *ours) fill() error {
	for slot := range requestsMax {
		b := o.batch(slot, slot+1, 0, contextTokens)
		for index := range o.pages {
			b.Grants = append(b.Grants,
				native.Grant{Slot: int32(slot), Index: int32(index), Page: int32(slot*o.pages + index)})
		}
		if err := o.model.Forward(b); err != nil {
			return err
		}
	}
	return nil
}

// batch feeds rows tokens from position start on to requests first to end - 1.
func (o *ours) batch(first, end, start, rows int) *native.Batch {
	b := &native.Batch{Results: make([]native.Result, end-first)}
	for slot := first; slot < end; slot++ {
		for position := start; position < start+rows; position++ {
			b.Tokens = append(b.Tokens, token(position))
		}
		b.Requests = append(b.Requests,
			native.Request{Slot: int32(slot), Start: int32(start), Rows: int32(rows), Head: 1, TopP: 1})
	}
	return b
}

// logits are those of the last request.
func (o *ours) logits(b *native.Batch) ([]float32, error) {
	vocab := o.model.Config().Model.Vocab
	b.Logits = make([]float32, len(b.Requests)*vocab)
	err := o.model.Forward(b)
	row := b.Logits[len(b.Logits)-vocab:]
	b.Logits = nil
	return row, err
}
