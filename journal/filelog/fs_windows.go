package filelog

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/windows"
)

// fileID is not cheap to get on Windows; 0 means unknown.
func fileID(fs.FileInfo) uint64 { return 0 }

func names(fs.FileInfo) int { return -1 }

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
		return "a network drive", false, nil
	}
	var name16 [windows.MAX_PATH + 1]uint16
	if err := windows.GetVolumeInformation(root, nil, 0, nil, nil, nil, &name16[0], uint32(len(name16))); err != nil {
		return "", false, &os.PathError{Op: "GetVolumeInformation", Path: name, Err: err}
	}
	kind := windows.UTF16ToString(name16[:])
	return kind, slices.Contains([]string{"NTFS", "ReFS", "FAT32", "FAT", "exFAT", "CSVFS"}, kind), nil
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
