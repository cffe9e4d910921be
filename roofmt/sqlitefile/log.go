package sqlitefile

import (
	"encoding/binary"
	"fmt"
	"os"
)

// The two files that SQLite keeps next to a database. A write-ahead log holds the new pages of transactions that the
// database does not have yet; a rollback journal holds the old ones of a transaction that SQLite is writing into it.
// In both, checksums show which of their pages count.

const (
	walHeader   = 32
	frameHeader = 24
)

// log lays the write-ahead log's pages over the database, up to the last transaction that ended in it.
func (img *image) log(size int64) error {
	raw, err := img.read("-wal")
	if err != nil || len(raw) < walHeader {
		return err
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch binary.BigEndian.Uint32(raw) {
	case 0x377f0682:
	case 0x377f0683:
		order = binary.BigEndian
	default:
		return nil // as for SQLite: an empty log
	}
	pages := pageSize(binary.BigEndian.Uint32(raw[8:]))
	sum := checksum(order, [2]uint32{}, raw[:24])
	if pages == 0 || size != 0 && pages != size || sum != pair(raw[24:]) {
		return nil
	}
	img.head = raw[:walHeader]
	salt := pair(raw[16:])
	pending := map[int64][]byte{}
	for at := int64(walHeader); at+frameHeader+pages <= int64(len(raw)); at += frameHeader + pages {
		head, page := raw[at:at+frameHeader], raw[at+frameHeader:at+frameHeader+pages]
		if pair(head[8:]) != salt {
			break // of an earlier use of the same file
		}
		sum = checksum(order, checksum(order, sum, head[:8]), page)
		number := binary.BigEndian.Uint32(head)
		if sum != pair(head[16:]) || number == 0 {
			break
		}
		pending[int64(number)] = page
		if length := binary.BigEndian.Uint32(head[4:]); length > 0 { // a transaction ends
			for n, p := range pending {
				img.over[n] = p
			}
			clear(pending)
			img.pages, img.pageSize = int64(length), pages
		}
	}
	return nil
}

func pair(raw []byte) [2]uint32 {
	return [2]uint32{binary.BigEndian.Uint32(raw), binary.BigEndian.Uint32(raw[4:])}
}

// checksum continues a sum over more of the log.
func checksum(order binary.ByteOrder, s [2]uint32, raw []byte) [2]uint32 {
	for i := 0; i+8 <= len(raw); i += 8 {
		s[0] += order.Uint32(raw[i:]) + s[1]
		s[1] += order.Uint32(raw[i+4:]) + s[0]
	}
	return s
}

const journalMagic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"

// journal puts back what an unfinished transaction may have written over. The transaction may be alive: until it ends, the
// database is what it was before.
func (img *image) journal() error {
	raw, err := img.read("-journal")
	if err != nil {
		return err
	}
	first := true
	for at := int64(0); at+28 <= int64(len(raw)) && string(raw[at:at+8]) == journalMagic; first = false {
		head := raw[at:]
		count, nonce := int64(binary.BigEndian.Uint32(head[8:])), binary.BigEndian.Uint32(head[12:])
		sector, pages := int64(binary.BigEndian.Uint32(head[20:])), pageSize(binary.BigEndian.Uint32(head[24:]))
		if first && pages != img.pageSize || sector < 32 || sector > 65536 || sector&(sector-1) != 0 {
			return nil
		}
		record := img.pageSize + 8
		at += sector
		if count == 0xffffffff {
			count = (int64(len(raw)) - at) / record // it was never synced, and so never counted
		}
		if first {
			if length := int64(binary.BigEndian.Uint32(head[16:])); count > 0 {
				img.pages = length
			}
		}
		for ; count > 0 && at+record <= int64(len(raw)); count, at = count-1, at+record {
			number := int64(binary.BigEndian.Uint32(raw[at:]))
			page := raw[at+4 : at+4+img.pageSize]
			if number == 0 || binary.BigEndian.Uint32(raw[at+4+img.pageSize:]) != journalSum(nonce, page) {
				return nil
			}
			if img.over[number] == nil { // the oldest is from before the transaction
				img.over[number] = page
			}
		}
		if count > 0 {
			return nil
		}
		at = (at + sector - 1) / sector * sector
	}
	return nil
}

func journalSum(nonce uint32, page []byte) uint32 {
	for i := len(page) - 200; i > 0; i -= 200 {
		nonce += uint32(page[i])
	}
	return nonce
}

// Newest is when a database changed last, in nanoseconds since 1970, and how many bytes it and its log have: as long
// as both stay the same, so does the content. Zeros mean no database.
func Newest(path string) (changed, size int64) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0
	}
	changed, size = info.ModTime().UnixNano(), info.Size()
	if info, err := os.Stat(path + "-wal"); err == nil {
		changed, size = max(changed, info.ModTime().UnixNano()), size+info.Size()
	}
	return changed, size
}

func wrap(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("reading the database %s: %w", path, err)
}
