// Package dirstat stats many files of one folder cheaply. It reads no content and writes nothing.
package dirstat

// File is the state of a file at one moment.
type File struct {
	Mode, Inode      uint64
	Size             int64
	Written, Changed int64 // nanoseconds since 1970
}
