package filelog

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/roost-dev/roost/internal/process"
	"github.com/roost-dev/roost/journal"
)

const (
	logName  = "journal.jsonl"
	idxName  = "journal.idx"
	lockName = "journal.lock"
	blobsDir = "blobs"
	tornName = "journal.torn-"
)

// record is the first line of journal.lock: how far the log is synced.
type record struct {
	Synced int64  `json:"synced"` // bytes of the log
	Head   uint64 `json:"head"`   // last sequence in them
	Epoch  uint64 `json:"epoch"`
	Ino    uint64 `json:"ino"`           // the log that is meant; a copied folder has another
	MAC    string `json:"mac,omitempty"` // "<key>.<mac>"; "" in a log that is not signed
	CRC    string `json:"crc"`
}

// The line always has the same length, so that one pwrite replaces it. A reader
// that catches a half-written one sees it by the checksum and reads again. Programs
// that did not sign wrote a shorter line, without "mac".
const (
	olderBody  = `{"synced":%-20d,"head":%-20d,"epoch":%-20d,"ino":%-20d`
	recordBody = olderBody + `,"mac":%-*s`
	olderLen   = len(`{"synced":,"head":,"epoch":,"ino":`) + 4*20 + len(`,"crc":"00000000"}`) + 1
	recordLen  = olderLen + len(`,"mac":`) + macWidth
	macWidth   = journal.KeyIDLen + len(`"."`) + 32
	ownerMax   = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode gives the line, signed when there is a key.
func (r record) encode(s *journal.Seal) []byte {
	id, mac := s.MAC("record", r.signed())
	r.MAC = ""
	if id != "" {
		r.MAC = id + "." + hex.EncodeToString(mac[:16])
	}
	return r.line(recordLen)
}

// signed is what the MAC is about.
func (r record) signed() []byte {
	return fmt.Appendf(nil, olderBody, r.Synced, r.Head, r.Epoch, r.Ino)
}

func (r record) line(length int) []byte {
	body := string(r.signed())
	if length == recordLen {
		body = fmt.Sprintf(recordBody, r.Synced, r.Head, r.Epoch, r.Ino, macWidth, `"`+r.MAC+`"`)
	}
	return fmt.Appendf(make([]byte, 0, length), "%s,\"crc\":\"%08x\"}\n", body, crc32.Checksum([]byte(body), castagnoli))
}

// proven reports whether this root wrote the record.
func (r record) proven(s *journal.Seal) bool {
	id, cut, ok := strings.Cut(r.MAC, ".")
	if !ok || s == nil {
		return false
	}
	short, err := hex.DecodeString(cut)
	return err == nil && s.Proves(id, short, "record", r.signed())
}

// readRecord reads the record; false when there is none that holds.
func readRecord(f io.ReaderAt) (record, bool) {
	r, _, ok := readLine(f)
	return r, ok
}

// readLine reads the record, and returns how long its line is.
func readLine(f io.ReaderAt) (record, int, bool) {
	var buf [recordLen]byte
	for range 3 {
		n, _ := f.ReadAt(buf[:], 0)
		for _, length := range []int{recordLen, olderLen} {
			var r record
			if n >= length && json.Unmarshal(buf[:length], &r) == nil && bytes.Equal(r.line(length), buf[:length]) {
				return r, length, true
			}
		}
		if n < olderLen {
			break
		}
	}
	return record{}, recordLen, false
}

// encodeOwner gives the second line of journal.lock.
func encodeOwner(o journal.OwnerInfo) []byte {
	b, err := json.Marshal(o)
	if err != nil {
		b = []byte("{}")
	}
	return append(b, '\n')
}

// readHolder reads who holds the lock, which is held. Zero as well when whoever signed is
// dead: that is not who holds it.
func readHolder(f io.ReaderAt) journal.OwnerInfo {
	o := readOwner(f)
	if o.Boot != "" && o.Boot == process.System() && o.PID > 0 && !process.Alive(o.PID) {
		return journal.OwnerInfo{}
	}
	return o
}

// readOwner reads who holds the lock, or held it last. Zero when unreadable.
func readOwner(f io.ReaderAt) (o journal.OwnerInfo) {
	_, length, _ := readLine(f)
	b, err := io.ReadAll(io.NewSectionReader(f, int64(length), ownerMax))
	if err != nil {
		return o
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	if json.Unmarshal(line, &o) != nil {
		return journal.OwnerInfo{}
	}
	return o
}
