package postgres

import (
	"errors"
	"os"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/database/payload"
)

// spool keeps the packed contents of a batch in a temporary file until they are stored.
type spool struct {
	f    *os.File // nil before the first piece
	end  int64
	pack []byte // the memory of the piece that was packed last
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

// add packs a piece.
func (s *spool) add(piece []byte) (at span, err error) {
	if s.f == nil {
		if s.f, err = os.CreateTemp("", "roost-content-"); err != nil {
			return at, err
		}
	}
	s.pack = payload.Pack(s.pack[:0], piece)
	at = span{s.end, len(s.pack)}
	_, err = s.f.WriteAt(s.pack, s.end)
	s.end += int64(len(s.pack))
	return at, err
}

// cutBack drops everything that was added from an offset on: the next pieces go over it.
func (s *spool) cutBack(at int64) { s.end = at }

// read returns a packed piece.
func (s *spool) read(p span) ([]byte, error) {
	data := make([]byte, p.length)
	_, err := s.f.ReadAt(data, p.at)
	return data, err
}

// drop removes the file.
func (s *spool) drop() error {
	if s.f == nil {
		return nil
	}
	f := s.f
	s.f = nil
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
