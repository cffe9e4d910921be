package filelog

// RecordOf is the first line of a lock file.
func RecordOf(synced int64, head, epoch, ino uint64) []byte {
	return record{Synced: synced, Head: head, Epoch: epoch, Ino: ino}.encode(nil)
}
