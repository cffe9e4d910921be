package postgres

import (
	"errors"
	"os"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/database/payload"
)

// spoolMemory bounds the bytes of a batch in memory; more go into a temporary file.
const spoolMemory = 4 << 20

// spool keeps the packed contents of a batch until they are stored.
type spool struct {
	buf     []byte
	f       *os.File
	flushed int64 // bytes that are in f
}

// span is the place of a packed piece.
type span struct {
	at     int64
	length int
}

// packed is a content of a batch.
type packed struct {
	key      content.Key
	size     int64
	stored   int64
	pieces   []span
	manifest bool
	names    []content.Key // of a manifest
}

func (s *spool) end() int64 { return s.flushed + int64(len(s.buf)) }

// add packs a piece.
func (s *spool) add(piece []byte) (span, error) {
	at := s.end()
	s.buf = payload.Pack(s.buf, piece)
	added := span{at, int(s.end() - at)}
	if len(s.buf) < spoolMemory {
		return added, nil
	}
	if s.f == nil {
		f, err := os.CreateTemp("", "roost-content-")
		if err != nil {
			return added, err
		}
		s.f = f
	}
	n, err := s.f.WriteAt(s.buf, s.flushed)
	if err != nil {
		return added, err
	}
	s.flushed, s.buf = s.flushed+int64(n), s.buf[:0]
	return added, nil
}

// cutBack drops everything that was added from an offset on.
func (s *spool) cutBack(at int64) {
	if at >= s.flushed {
		s.buf = s.buf[:at-s.flushed]
		return
	}
	s.buf, s.flushed = s.buf[:0], at // the next bytes go over those in the file
}

// read returns a packed piece.
func (s *spool) read(p span) ([]byte, error) {
	if p.at >= s.flushed {
		at := p.at - s.flushed
		return s.buf[at : at+int64(p.length)], nil
	}
	data := make([]byte, p.length)
	_, err := s.f.ReadAt(data, p.at)
	return data, err
}

// drop removes the file.
func (s *spool) drop() error {
	s.buf = nil
	if s.f == nil {
		return nil
	}
	f := s.f
	s.f = nil
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
