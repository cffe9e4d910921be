package filelog

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// syncDir does nothing: Windows keeps names durable by itself.
func syncDir(string) error { return nil }

// fileID is not cheap to get on Windows; 0 means unknown.
func fileID(fs.FileInfo) uint64 { return 0 }

func unlinked(fs.FileInfo) bool { return false }

func locksTrusted(name string) (string, bool, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", false, err
	}
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(abs) + `\`)
	if err != nil {
		return "", false, err
	}
	if windows.GetDriveType(root) == windows.DRIVE_REMOTE {
		return "network drive", false, nil
	}
	return "", true, nil
}

func freeSpace(name string) (free, total uint64, err error) {
	p, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return 0, 0, err
	}
	var all uint64
	err = windows.GetDiskFreeSpaceEx(p, &free, &total, &all)
	return free, total, err
}
