package roofmt

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// transcriptEnd is how the name of a transcript ends. The rest is the id of its session.
const transcriptEnd = ".messages.json"

// TranscriptName is the name of the transcript in a session's folder.
func TranscriptName(id string) string { return id + transcriptEnd }

// IsTranscript reports whether a file of this name is a transcript of Cline's.
func IsTranscript(name string) bool { return strings.HasSuffix(name, transcriptEnd) }

// PlaceOf splits what Read takes into the folder that the tasks lie in, and the id of this one there. Transcripts of subagents
// lie in the folder of the session that started them; they are tasks of their own all the same.
func PlaceOf(dir string) (tasksDir, id string) {
	tasksDir, id = filepath.Split(filepath.Clean(dir))
	tasksDir = filepath.Clean(tasksDir)
	if stem, ok := strings.CutSuffix(id, transcriptEnd); ok {
		root := filepath.Base(tasksDir)
		return filepath.Dir(tasksDir), root + subagentMark + stem
	}
	return tasksDir, id
}

// FolderOf is the folder of what Read takes: the path itself, but for the transcript of a subagent.
func FolderOf(dir string) string {
	if strings.HasSuffix(dir, transcriptEnd) {
		return filepath.Dir(dir)
	}
	return dir
}

// IsFolder reports whether dir holds a file of a task. Errors count as no.
func IsFolder(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && (hasTaskFile(entries) || isSession(dir, entries))
}

func hasTaskFile(entries []fs.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() && isTaskFile(e.Name()) })
}
