package filelog

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"syscall"

	"github.com/roost-dev/roost/journal"
)

// saveError explains in plain words why a commit is not on disk. It is journal.ErrNotSaved and its cause at once.
type saveError struct {
	op, path string
	cause    error
	advice   string
}

func (e *saveError) Error() string {
	return fmt.Sprintf("not saved: %s %s: %s (%v)", e.op, e.path, e.advice, e.cause)
}

func (e *saveError) Unwrap() []error { return []error{journal.ErrNotSaved, e.cause} }

// notSaved explains a failed call.
func notSaved(fsys FS, op, path string, cause error) error {
	if cause == nil {
		cause = io.ErrShortWrite
	}
	var old *saveError
	if errors.As(cause, &old) {
		return cause
	}
	return &saveError{op: op, path: path, cause: cause, advice: advice(fsys, path, cause)}
}

func advice(fsys FS, path string, cause error) string {
	switch {
	case errors.Is(cause, syscall.ENOSPC):
		space := ""
		if free, total, err := fsys.FreeSpace(filepath.Dir(path)); err == nil && total > 0 {
			space = fmt.Sprintf(", %s of %s free", bytesText(free), bytesText(total))
		}
		return "the disk is full" + space + "; make room"
	case errors.Is(cause, syscall.EDQUOT):
		return "your disk quota is used up; delete files of yours or ask for more"
	case errors.Is(cause, syscall.EROFS):
		return "the file system is read-only; mount it writable"
	case errors.Is(cause, syscall.EIO):
		return "the disk reports an input/output error; look at its health (dmesg) and keep a copy of this folder"
	case errors.Is(cause, syscall.EACCES), errors.Is(cause, syscall.EPERM):
		return "permission denied; make the folder writable for this user"
	case errors.Is(cause, syscall.EFBIG):
		return "the file would exceed the size limit; raise it (ulimit -f)"
	case errors.Is(cause, syscall.EMFILE), errors.Is(cause, syscall.ENFILE):
		return "too many files are open; raise the limit (ulimit -n)"
	case errors.Is(cause, io.ErrShortWrite):
		return "the disk took only a part of it"
	}
	return "the disk refused"
}

func bytesText(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
