package roofmt

import (
	"io"
	"sync"

	"github.com/roost-dev/roost/esjson"
)

// Messages of megabytes are read one at a time, however many folders are read at once, in memory that is reused: two
// of the longest at once, or one and the rest of the last one, would be more than a whole list may take. The memory
// is kept as long as a reader works. A sync.Pool keeps one for each core, and a weak pointer none when it is needed.
var large struct {
	sync.Mutex
	room    []byte
	readers int
}

// reading registers a reader of folders; done ends that.
func reading() (done func()) {
	large.Lock()
	defer large.Unlock()
	large.readers++
	return func() {
		large.Lock()
		defer large.Unlock()
		if large.readers--; large.readers == 0 {
			large.room = nil
		}
	}
}

// lookAt reads an element and shows its bytes, which are good for the length of the call. The
// error is that of reading; show must not look at another element.
func lookAt(file io.ReaderAt, e esjson.Element, show func(raw []byte)) error {
	if e.Len <= noteRoom {
		raw := make([]byte, e.Len)
		if _, err := file.ReadAt(raw, e.Off); err != nil {
			return err
		}
		show(raw)
		return nil
	}
	large.Lock()
	defer large.Unlock()
	if int64(len(large.room)) < e.Len {
		large.room = nil // let go before the new one is made, with room for one that is a little longer
		large.room = make([]byte, max(e.Len, min(2*e.Len, messageRoom)))
	}
	raw := large.room[:e.Len]
	if _, err := file.ReadAt(raw, e.Off); err != nil {
		return err
	}
	show(raw)
	return nil
}
