package cpu

// Reader reads memory and nothing else, on threads like those of a device: the measure for steps, which can
// not be faster than their weights come from memory.
type Reader struct {
	workers *workers
	memory  *weights
}

// NewReader makes a reader of bytes bytes, rounded up to 128 KiB, with as many threads.
func NewReader(threads int, bytes int64) (*Reader, error) {
	const depth, columns = 1024, 64
	blocks := int((bytes + 2*depth*columns - 1) / (2 * depth * columns))
	w, err := newWorkers(threads, nil)
	if err != nil {
		return nil, err
	}
	memory, err := newWeights(blocks*columns, depth, make([]uint16, blocks*columns*depth))
	if err != nil {
		w.close()
		return nil, err
	}
	return &Reader{w, memory}, nil
}

// Bytes is how much Read reads.
func (r *Reader) Bytes() int64 { return int64(r.memory.bytes()) }

// Read reads all of it once.
func (r *Reader) Read() error {
	_, err := stream(r.workers, r.memory)
	return err
}

// Close gives back memory and threads.
func (r *Reader) Close() {
	r.memory.close()
	r.workers.close()
}
