package feed

// Small makes segments of a log end after so many bytes.
func (l *Files) Small(bytes int64) *Files {
	l.size = bytes
	return l
}
