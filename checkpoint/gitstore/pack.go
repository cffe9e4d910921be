package gitstore

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // git's names of objects, not a protection
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/klauspost/compress/zlib"

	"github.com/roost-dev/roost/content"
)

// pack is one pack file with its index (version 2).
type pack struct {
	path  string
	size  int64
	count int
	ids   []byte // 20 bytes each, in order
	offs  []byte
	big   []byte // offsets that need more than 31 bits
}

const (
	indexMagic = "\xfftOc\x00\x00\x00\x02"
	indexHead  = len(indexMagic) + 256*4
	packHead   = 12
)

func damaged(why string) error { return fmt.Errorf("%w: %s", content.ErrDamaged, why) }

// openPack reads the index of a pack. Nothing is allocated because of what a damaged index claims.
func openPack(base string) (*pack, error) {
	data, err := os.ReadFile(base + ".idx")
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(base + ".pack")
	if err != nil {
		return nil, err
	}
	if len(data) < indexHead+2*sha1.Size || string(data[:len(indexMagic)]) != indexMagic {
		return nil, damaged("a pack's index does not begin as one")
	}
	body := data[:len(data)-sha1.Size]
	if h := sha1.Sum(body); !bytes.Equal(h[:], data[len(body):]) { //nolint:gosec // as above
		return nil, damaged("a pack's index has a wrong checksum")
	}
	n := uint64(binary.BigEndian.Uint32(data[indexHead-4:]))
	rest := body[indexHead : len(body)-sha1.Size]
	if uint64(len(rest)) < n*28 {
		return nil, damaged("a pack's index is too short")
	}
	return &pack{
		path: base + ".pack", size: info.Size(), count: int(n),
		ids: rest[:20*n], offs: rest[24*n : 28*n], big: rest[28*n:],
	}, nil
}

func (p *pack) id(i int) (id objectID) {
	copy(id[:], p.ids[20*i:])
	return id
}

func (p *pack) find(id objectID) (int, bool) {
	return sort.Find(p.count, func(i int) int { return bytes.Compare(id[:], p.ids[20*i:20*i+20]) })
}

// offset is where an entry begins; -1 when the index does not have it.
func (p *pack) offset(i int) int64 {
	o := binary.BigEndian.Uint32(p.offs[4*i:])
	if o&(1<<31) == 0 {
		return int64(o)
	}
	at := int(o&^(1<<31)) * 8
	if at+8 > len(p.big) {
		return -1
	}
	return int64(binary.BigEndian.Uint64(p.big[at:]) & (1<<62 - 1))
}

// packKinds are the kinds of whole objects as a pack numbers them; 6 and 7 are differences to another object.
var packKinds = [8]string{1: "commit", 2: "tree", 3: "blob", 4: "tag"}

// maxObject bounds what is read into memory, in bytes. Earlier versions kept files of at most 64 MiB.
const maxObject = 256 << 20

// errDifference: an entry is not a whole object. Earlier versions wrote none such.
var errDifference = errors.New("it is the difference to another object")

// read reads entry i.
func (p *pack) read(i int) (kind string, data []byte, err error) {
	off := p.offset(i)
	if off < packHead || off >= p.size-sha1.Size {
		return "", nil, damaged("an entry is outside of its pack")
	}
	f, err := os.Open(p.path)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	in := bufio.NewReader(io.NewSectionReader(f, off, p.size-off))
	c, err := in.ReadByte()
	if err != nil {
		return "", nil, err
	}
	number, size := c>>4&7, int64(c&15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = in.ReadByte(); err != nil || shift > 53 {
			return "", nil, damaged("an entry is cut off")
		}
		size |= int64(c&0x7f) << shift
	}
	switch {
	case number == 6 || number == 7:
		return "", nil, errDifference
	case packKinds[number] == "":
		return "", nil, damaged("an entry has an unknown kind")
	}
	data, err = inflate(in, size)
	return packKinds[number], data, err
}

// inflate decompresses exactly size bytes.
func inflate(r io.Reader, size int64) ([]byte, error) {
	if size > maxObject {
		return nil, fmt.Errorf("%w: an object of %d bytes", content.ErrTooLarge, size)
	}
	z, err := zlib.NewReader(r)
	if err != nil {
		return nil, damaged(err.Error())
	}
	defer z.Close()
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(z, size+1))
	if err != nil {
		return nil, damaged(err.Error())
	}
	if n != size {
		return nil, damaged("an object does not have the size in its header")
	}
	return out.Bytes(), nil
}
