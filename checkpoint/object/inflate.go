package object

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// inflater is a reusable decompressor.
type inflater struct {
	in *bufio.Reader
	z  io.ReadCloser
}

var inflaters = sync.Pool{New: func() any { return &inflater{in: bufio.NewReaderSize(nil, 16<<10)} }}

// inflate hands use the decompressed bytes of r.
func inflate(r io.Reader, use func(io.Reader) error) (err error) {
	i := inflaters.Get().(*inflater)
	i.in.Reset(r)
	if i.z == nil {
		i.z, err = zlib.NewReader(i.in)
	} else {
		err = i.z.(zlib.Resetter).Reset(i.in, nil)
	}
	if err != nil {
		return fmt.Errorf("%w: %v", ErrDamaged, err)
	}
	err = use(i.z)
	i.in.Reset(nil)
	inflaters.Put(i)
	return err
}

// take reads exactly size bytes that are then at their end. It allocates as the
// bytes come, not what a damaged header says.
func take(ctx context.Context, r io.Reader, size int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(size, 1<<20) + bytes.MinRead))
	n, err := io.Copy(&b, &patient{ctx, io.LimitReader(r, size+1)})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%w: %v", ErrDamaged, err)
	case n != size:
		return nil, fmt.Errorf("%w: it has not the %d bytes that it says", ErrDamaged, size)
	}
	return b.Bytes(), nil
}

// patient reads until its context ends.
type patient struct {
	ctx context.Context
	r   io.Reader
}

func (p *patient) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.r.Read(b)
}

// writeError marks an error of the one who takes the bytes, so that it is not taken
// for damage.
type writeError struct{ error }

func (e writeError) Unwrap() error { return e.error }

type outlet struct {
	w io.Writer
	n int64
}

func (o *outlet) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	o.n += int64(n)
	if err != nil {
		err = writeError{err}
	}
	return n, err
}

// pour copies exactly size bytes that are then at their end.
func pour(ctx context.Context, w io.Writer, r io.Reader, size int64) error {
	n, err := io.Copy(w, &patient{ctx, io.LimitReader(r, size+1)})
	var taker writeError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &taker):
		return taker
	case err != nil:
		return fmt.Errorf("%w: %v", ErrDamaged, err)
	case n != size:
		return fmt.Errorf("%w: it has not the %d bytes that it says", ErrDamaged, size)
	}
	return nil
}
