package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/atomicfile"
)

// The newest survey is stored with the objects, so that the first survey of the next process need not read every file
// again. It is derived and may be deleted; a damaged one, or one of another version, counts as missing. The last one
// written wins: its data on a file is used only while the file looks the same.
const (
	cacheName  = "survey"
	cacheMagic = "roost survey 1\n"
	maxCache   = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func nanosNow() int64 { return time.Now().UnixNano() }

// load takes over the survey of an earlier process, once.
func (k *Keeper) load() {
	if k.loaded {
		return
	}
	k.loaded = true
	k.sweep()
	name := filepath.Join(k.dir, cacheName)
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCache {
		return
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return
	}
	if list, ok := decodeCache(data); ok {
		k.last = &scan{list: list}
		k.stored = cacheSum(data)
	}
}

// sweep removes temporary files that killed processes left.
func (k *Keeper) sweep() {
	names, _ := filepath.Glob(filepath.Join(k.dir, cacheName+"-*.tmp")) // an odd path costs a file
	for _, name := range names {
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(name)
		}
	}
}

// remember stores the newest survey when it differs from the stored one. A failure costs time at the next start, and
// nothing else.
func (k *Keeper) remember() {
	data := encodeCache(k.last.list)
	sum := cacheSum(data)
	if sum == k.stored {
		return
	}
	k.stored = sum
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return
	}
	_ = atomicfile.WriteDerived(filepath.Join(k.dir, cacheName), cacheName+"-*.tmp", data)
}

// surveyed are the contents in the store of a folder that the newest survey relies on.
func surveyed(dir string) []content.Hash {
	data, err := os.ReadFile(filepath.Join(dir, cacheName))
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		return nil
	}
	list, _ := decodeCache(data)
	var hashes []content.Hash
	for i := range list {
		if e := &list[i]; e.held == ours {
			hashes = append(hashes, e.hash())
		}
	}
	return hashes
}

func encodeCache(list []entry) []byte {
	size := 0
	for i := range list {
		size += len(list[i].path) + 120
	}
	b := make([]byte, 0, size+64)
	b = append(b, cacheMagic...)
	b = binary.AppendUvarint(b, uint64(len(list)))
	for i := range list {
		e := &list[i]
		b = binary.AppendUvarint(b, uint64(len(e.path)))
		b = append(b, e.path...)
		b = binary.AppendUvarint(b, uint64(e.stat.mode))
		b = binary.AppendVarint(b, e.stat.size)
		b = binary.AppendVarint(b, e.stat.mtime)
		b = binary.AppendVarint(b, e.stat.ctime)
		b = binary.AppendUvarint(b, e.stat.inode)
		b = binary.AppendUvarint(b, e.stat.device)
		if !e.named {
			b = append(b, 0)
			continue
		}
		b = append(b, 1+byte(e.held))
		b = binary.AppendVarint(b, e.read)
		b = binary.AppendVarint(b, e.size)
		b = append(b, e.blob[:]...)
		b = append(b, e.sum[:]...)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// cacheSum is the checksum at the end of a survey. A checksum of the whole would be the same for every survey: that is
// a property of data followed by its own checksum.
func cacheSum(data []byte) uint32 { return binary.LittleEndian.Uint32(data[len(data)-4:]) }

func decodeCache(data []byte) ([]entry, bool) {
	body, ok := bytes.CutPrefix(data, []byte(cacheMagic))
	if !ok || len(body) < 4 {
		return nil, false
	}
	all, body := data[:len(data)-4], body[:len(body)-4]
	if crc32.Checksum(all, castagnoli) != binary.LittleEndian.Uint32(data[len(data)-4:]) {
		return nil, false
	}
	d := &decoder{b: body}
	n := d.uvarint()
	if n > uint64(len(body))/8 {
		return nil, false
	}
	list := make([]entry, 0, n)
	for range n {
		var e entry
		e.path = string(d.take(d.uvarint()))
		e.stat = stat{mode: fs.FileMode(d.uvarint()), size: d.varint(), mtime: d.varint(), ctime: d.varint(),
			inode: d.uvarint(), device: d.uvarint()}
		if held := d.take(1); len(held) == 1 && held[0] > 0 {
			e.named, e.held = true, location(held[0]-1)
			e.read, e.size = d.varint(), d.varint()
			copy(e.blob[:], d.take(uint64(len(e.blob))))
			copy(e.sum[:], d.take(uint64(len(e.sum))))
		}
		if d.bad || e.held > theirs || len(list) > 0 && list[len(list)-1].path >= e.path {
			return nil, false
		}
		list = append(list, e)
	}
	return list, len(d.b) == 0
}

type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}
