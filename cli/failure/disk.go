package failure

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
)

// divide separates what failed from why in an error's text: "export task x: write y:
// no space left" is about exporting task x. It does not divide text in quotation marks;
// a text that is too long for a headline has none.
func divide(text string) (what, why string, ok bool) {
	const headline = 160
	quoted := false
	for i := 0; i < len(text) && i < headline; i++ {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case !quoted && i > 0 && strings.HasPrefix(text[i:], ": ") && len(text) > i+2:
			return text[:i], text[i+2:], true
		}
	}
	return "", text, false
}

// disk makes f the failure of a disk that is full or may not be written to, where err is one.
func (f *Failure) disk(err error) bool {
	var todo string
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		f.Code, f.Status, f.Retryable = "disk_full", 507, true
		todo = "make room, then do it again"
	case errors.Is(err, syscall.EROFS):
		f.Code = "read_only"
		todo = "mount it writable, or name another place"
	default:
		return false
	}
	f.Try = "df -h"
	var at *fs.PathError
	if errors.As(err, &at) && filepath.IsAbs(at.Path) && !strings.HasPrefix(at.Path, "/dev/") {
		f.Try += " " + ShellWord(filepath.Dir(at.Path))
	}
	f.Try += "  # " + todo
	return true
}
