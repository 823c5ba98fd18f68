package result

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
)

// RequestRow is a request in requests.parquet. Times are ns since the start of the run; null means never.
type RequestRow struct {
	Point      string `parquet:"point,dict"`
	Replicate  int32  `parquet:"replicate"`
	Seed       uint64 `parquet:"seed"`
	ID         uint64 `parquet:"request"`
	ArrivalNs  *int64 `parquet:"arrival_ns,optional"`
	AdmittedNs *int64 `parquet:"admitted_ns,optional"`
	FirstNs    *int64 `parquet:"first_token_ns,optional"`
	LeftNs     int64  `parquet:"left_ns"`
	Tokens     int32  `parquet:"tokens"`
	ByLast     int32  `parquet:"tokens_by_last_model"`
	Dropped    int32  `parquet:"drafts_dropped"`
	Outcome    string `parquet:"outcome,dict"`
	Reason     string `parquet:"reason,dict"`
	RefusedBy  string `parquet:"refused_by,dict"` // the model whose KV pool can never hold it; "" for none
	Warmup     bool   `parquet:"warmup"`
}

// rowBatch is how many rows are in memory at a time.
const rowBatch = 1024

// RequestWriter writes requests as a stream.
type RequestWriter struct {
	file   *os.File
	writer *parquet.GenericWriter[RequestRow]
	rows   []RequestRow
	group  int
	err    error
}

// rowGroup is the number of rows that the writer holds, encoded, before it writes them out: a larger one
// takes more memory, and many small ones a larger file.
const rowGroup = 1 << 14

// NewRequestWriter makes a file; Close finishes it.
func NewRequestWriter(path string) (*RequestWriter, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("requests: %w", err)
	}
	writer := parquet.NewGenericWriter[RequestRow](file,
		parquet.CreatedBy("tokenrouter", "1", "0"), parquet.Compression(&parquet.Zstd))
	return &RequestWriter{file: file, writer: writer}, nil
}

// Add writes a row. An error shows at Close.
func (w *RequestWriter) Add(r RequestRow) {
	if w.rows = append(w.rows, r); len(w.rows) == rowBatch {
		w.flush()
	}
}

func (w *RequestWriter) flush() {
	if w.err != nil || len(w.rows) == 0 {
		return
	}
	_, w.err = w.writer.Write(w.rows)
	if w.group += len(w.rows); w.err == nil && w.group >= rowGroup {
		w.err, w.group = w.writer.Flush(), 0
	}
	w.rows = w.rows[:0]
}

// Close writes the rest and returns the first error of all.
func (w *RequestWriter) Close() error {
	w.flush()
	if err := errors.Join(w.err, w.writer.Close(), w.file.Close()); err != nil {
		return fmt.Errorf("requests: %w", err)
	}
	return nil
}

// EachRequest calls f for every row of a file, in order.
func EachRequest(path string, f func(RequestRow) error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("requests: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("requests: %w", err)
	}
	pf, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		return fmt.Errorf("requests %s: %w", path, err)
	}
	reader := parquet.NewGenericReader[RequestRow](pf)
	defer reader.Close()
	for {
		rows := make([]RequestRow, rowBatch)
		n, err := reader.Read(rows)
		for _, r := range rows[:n] {
			if err := f(r); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("requests %s: %w", path, err)
		}
	}
}
