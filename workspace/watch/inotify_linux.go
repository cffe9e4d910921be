package watch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// The events to report of a folder. Of a folder on the way only moves are reported: more would make the system go
// through all entries in it, which takes a hundredth of a second in /tmp. A write through a mapping is reported only
// by the close.
const (
	onTheWay = unix.IN_MOVE_SELF | unix.IN_DELETE_SELF | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW | unix.IN_MASK_ADD
	ofFiles  = onTheWay | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
)

func newSystem() system { return &inotify{} }

type inotify struct {
	fd  int
	buf []byte
}

func (s *inotify) open() error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("watch for changes: %w", err)
	}
	if s.fd = fd; s.buf == nil {
		s.buf = make([]byte, 16<<10)
	}
	return nil
}

func (s *inotify) add(dir string, whole bool) (int32, error) {
	mask := uint32(onTheWay)
	if whole {
		mask = ofFiles
	}
	id, err := unix.InotifyAddWatch(s.fd, dir, mask)
	if err != nil {
		return 0, fmt.Errorf("watch the folder %s: %w", dir, err)
	}
	return int32(id), nil
}

func (s *inotify) remove(mark int32) {
	_, _ = unix.InotifyRmWatch(s.fd, uint32(mark)) // it may be gone with its folder
}

func (s *inotify) close() { _ = unix.Close(s.fd) }

func (s *inotify) read(each func(event)) error {
	for {
		n, err := unix.Read(s.fd, s.buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil:
			return fmt.Errorf("read what changed: %w", err)
		case n <= 0:
			return io.ErrUnexpectedEOF
		}
		if err := parse(s.buf[:n], each); err != nil {
			return err
		}
	}
}

// parse takes apart what one read gave.
func parse(data []byte, each func(event)) error {
	for len(data) > 0 {
		if len(data) < unix.SizeofInotifyEvent {
			return io.ErrUnexpectedEOF
		}
		mask, size := binary.NativeEndian.Uint32(data[4:]), int(binary.NativeEndian.Uint32(data[12:]))
		e := event{
			mark: int32(binary.NativeEndian.Uint32(data)),
			gone: mask&(unix.IN_MOVE_SELF|unix.IN_DELETE_SELF|unix.IN_UNMOUNT) != 0,
			over: mask&unix.IN_IGNORED != 0,
			lost: mask&unix.IN_Q_OVERFLOW != 0,
		}
		data = data[unix.SizeofInotifyEvent:]
		if size < 0 || size > len(data) {
			return io.ErrUnexpectedEOF
		}
		name, _, _ := bytes.Cut(data[:size], []byte{0})
		e.name, data = string(name), data[size:]
		each(e)
	}
	return nil
}

// foreign are the file systems on which others change files without our system's knowing:
// NFS, SMB, CIFS, SMB2, 9p, FUSE, AFS, Coda, NCP, vboxsf, Ceph, GFS2, OCFS2, Lustre.
var foreign = map[uint32]bool{
	0x6969: true, 0x517b: true, 0xff534d42: true, 0xfe534d42: true, 0x01021997: true, 0x65735546: true, 0x5346414f: true,
	0x73757245: true, 0x564c: true, 0x786f4256: true, 0x00c36400: true, 0x01161970: true, 0x7461636f: true, 0x0bd00bd0: true,
}

// localFiles reports whether the system knows of all changes to files in a folder.
func localFiles(dir string) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false, fmt.Errorf("look at the file system of %s: %w", dir, err)
	}
	return !foreign[uint32(st.Type)], nil
}
