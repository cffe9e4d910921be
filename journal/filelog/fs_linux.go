package filelog

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// datasync leaves out the times, which fsync would write and no reader needs.
func datasync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			if err != nil {
				return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
			}
			return nil
		}
	}
}

// trustedKinds are the local file systems, whose locks the kernel keeps. All others are refused: NFS, SMB, 9p, FUSE,
// cluster file systems (Lustre, BeeGFS, GPFS, Ceph) and unknown ones lose locks on reconnect, hold them on one
// machine only, or leave them to a program.
var trustedKinds = map[uint32]bool{
	0xef53:     true, // ext2, ext3, ext4
	0x58465342: true, // xfs
	0x9123683e: true, // btrfs
	0x2fc12fc1: true, // zfs
	0xca451a4e: true, // bcachefs
	0xf2f52010: true, // f2fs
	0x3153464a: true, // jfs
	0x52654973: true, // reiserfs
	0x3434:     true, // nilfs2
	0x24051905: true, // ubifs
	0x01021994: true, // tmpfs
	0x858458f6: true, // ramfs
	0x794c7630: true, // overlayfs
	0xf15f:     true, // ecryptfs, over one of these
	0x53464846: true, // the root of WSL 1
	0x00011954: true, // ufs
	0x4244:     true, // hfs
	0x482b:     true, // hfs+
	0x42535041: true, // apfs
	0x5346544e: true, // ntfs
	0x7366746e: true, // ntfs3
	0x4d44:     true, // vfat
	0x2011bab0: true, // exfat
}

// kinds names some of the refused file systems.
var kinds = map[uint32]string{
	0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB2", 0x01021997: "9p",
	0x65735546: "FUSE", 0x5346414f: "AFS", 0x73757245: "Coda", 0x564c: "NCP", 0x786f4256: "vboxsf",
	0x0bd00bd0: "Lustre", 0x19830326: "BeeGFS", 0x47504653: "GPFS", 0x00c36400: "Ceph", 0x01161970: "GFS2",
	0x7461636f: "OCFS2", 0x9fa0: "proc", 0x62656572: "sysfs",
}

func locksTrusted(name string) (string, bool, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(name, &st); err != nil {
		return "", false, &os.PathError{Op: "statfs", Path: name, Err: err}
	}
	kind, ok := judgeKind(uint32(st.Type))
	return kind, ok, nil
}

// judgeKind reports whether the locks of a file system are trusted, and names it if not.
func judgeKind(magic uint32) (kind string, ok bool) {
	if trustedKinds[magic] {
		return "", true
	}
	if kind = kinds[magic]; kind == "" {
		kind = fmt.Sprintf("a file system of type 0x%x", magic)
	}
	return kind, false
}
