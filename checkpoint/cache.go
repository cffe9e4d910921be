package checkpoint

import (
	"encoding/binary"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/task/codec"
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
	more, _ := filepath.Glob(filepath.Join(k.dir, "."+beforeName+"*.tmp"))
	for _, name := range append(names, more...) {
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
	if err != nil {
		return nil
	}
	list, _ := decodeCache(data)
	return storedHere(list)
}

// storedHere are the contents of a list that are in the store.
func storedHere(list []entry) (hashes []content.Hash) {
	for i := range list {
		if e := &list[i]; e.held == ours {
			hashes = append(hashes, e.hash())
		}
	}
	return hashes
}

// summed adds a checksum at the end.
func summed(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// unsummed reads what begins with magic, and ends with its checksum.
func unsummed(data []byte, magic string) (u codec.Reader, ok bool) {
	n := len(data) - 4
	if n < len(magic) || string(data[:len(magic)]) != magic || crc32.Checksum(data[:n], castagnoli) != cacheSum(data) {
		return u, false
	}
	return codec.Reader{In: data[len(magic):n]}, true
}

// cacheSum is the checksum at the end of a survey. A checksum of the whole would be the same for every survey: that is
// a property of data followed by its own checksum.
func cacheSum(data []byte) uint32 { return binary.LittleEndian.Uint32(data[len(data)-4:]) }

func encodeCache(list []entry) []byte {
	w := codec.NewWriter([]byte(cacheMagic))
	w.Uint(uint64(len(list)))
	for i := range list {
		e := &list[i]
		w.Bytes([]byte(e.path))
		w.Uint(uint64(e.stat.mode))
		w.Int(e.stat.size)
		w.Int(e.stat.mtime)
		w.Int(e.stat.ctime)
		w.Uint(e.stat.inode)
		w.Uint(e.stat.device)
		if !e.named {
			w.Uint(0)
			continue
		}
		w.Uint(1 + uint64(e.held))
		w.Int(e.read)
		w.Int(e.size)
		w.Out = append(append(w.Out, e.blob[:]...), e.sum[:]...)
	}
	return summed(w.Out)
}

func decodeCache(data []byte) ([]entry, bool) {
	u, ok := unsummed(data, cacheMagic)
	if !ok {
		return nil, false
	}
	n := u.Count()
	list := make([]entry, 0, n/8) // an entry takes more than eight bytes
	for range n {
		e := entry{path: string(u.Bytes())}
		e.stat = stat{
			mode:   fs.FileMode(u.Uint()),
			size:   u.Int(),
			mtime:  u.Int(),
			ctime:  u.Int(),
			inode:  u.Uint(),
			device: u.Uint(),
		}
		if held := u.Uint(); held > 0 {
			e.named, e.held, e.read, e.size = true, location(held-1), u.Int(), u.Int()
			copy(e.blob[:], take(&u, len(e.blob)))
			copy(e.sum[:], take(&u, len(e.sum)))
		}
		if u.Bad || e.held > theirs || len(list) > 0 && list[len(list)-1].path >= e.path {
			return nil, false
		}
		list = append(list, e)
	}
	return list, len(u.In) == 0
}

// take reads that many bytes.
func take(u *codec.Reader, n int) []byte {
	if n > len(u.In) {
		u.Fail()
		return nil
	}
	b := u.In[:n]
	u.In = u.In[n:]
	return b
}
