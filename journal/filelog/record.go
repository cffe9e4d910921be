package filelog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"

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
	Ino    uint64 `json:"ino"` // the log that is meant; a copied folder has another
	CRC    string `json:"crc"`
}

// The line always has the same length, so that one pwrite replaces it. A reader
// that catches a half-written one sees it by the checksum and reads again.
const (
	recordBody = `{"synced":%-20d,"head":%-20d,"epoch":%-20d,"ino":%-20d`
	recordLen  = len(`{"synced":,"head":,"epoch":,"ino":`) + 4*20 + len(`,"crc":"00000000"}`) + 1
	ownerMax   = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (r record) encode() []byte {
	body := fmt.Sprintf(recordBody, r.Synced, r.Head, r.Epoch, r.Ino)
	return fmt.Appendf(make([]byte, 0, recordLen), "%s,\"crc\":\"%08x\"}\n", body, crc32.Checksum([]byte(body), castagnoli))
}

// readRecord reads the record; false when there is none that holds.
func readRecord(f io.ReaderAt) (record, bool) {
	var buf [recordLen]byte
	for range 3 {
		if n, _ := f.ReadAt(buf[:], 0); n < recordLen {
			return record{}, false
		}
		var r record
		if json.Unmarshal(buf[:], &r) == nil && bytes.Equal(r.encode(), buf[:]) {
			return r, true
		}
	}
	return record{}, false
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
	if o.Boot != "" && o.Boot == system() && o.PID > 0 && gone(o.PID) {
		return journal.OwnerInfo{}
	}
	return o
}

// readOwner reads who holds the lock, or held it last. Zero when unreadable.
func readOwner(f io.ReaderAt) (o journal.OwnerInfo) {
	b, err := io.ReadAll(io.NewSectionReader(f, int64(recordLen), ownerMax))
	if err != nil {
		return o
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	if json.Unmarshal(line, &o) != nil {
		return journal.OwnerInfo{}
	}
	return o
}
