package catalog

// version is of the tables and of everything that is derived into them. A file of
// another version is emptied: it is derived.
const version = 8

const schema = `
CREATE TABLE task(id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL, ts INTEGER NOT NULL, summary BLOB NOT NULL);
` + rowSchema + textSchema + `
PRAGMA user_version = %d;`

// A list reads every row, and the summaries of one page: those have a table of their own, so that a scan does not read
// their pages. The columns are those of Source.columns and Row.columns.
const (
	sourceColumns = "name, tool, by_path, path, tasks, problem, indexes, seen, compared"
	rowColumns    = "name, title, digest, folders, written, item, indexes, sizes, files, ts, cost, tokens, size, " +
		"tool, status, workspace, model, parent, tags, content, flags"
	rowSchema = "CREATE TABLE source(id INTEGER PRIMARY KEY, build, " + sourceColumns + ", checksum, UNIQUE(name));" +
		"CREATE TABLE row(id INTEGER PRIMARY KEY, source INTEGER, " + rowColumns + ", checksum, UNIQUE(source, name));" + `
CREATE TABLE summary(row INTEGER PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TRIGGER row_gone AFTER DELETE ON row BEGIN DELETE FROM summary WHERE row = old.id; END;`
)

const dropRows = "DROP TABLE IF EXISTS source; DROP TABLE IF EXISTS row; DROP TABLE IF EXISTS summary;"

// A search reads the part of every candidate, and the body of a few. SQLite's full-text table has one document a part: the part's distinct
// words and joints, already folded and cut, with no places (detail=none) and no copy of
// them. Its ascii tokenizer then cuts at line breaks only. The vocabulary has the words
// in sorted lists, because a term may be a part of a word, and to scan the full-text
// table's own vocabulary takes seconds.
const textSchema = `
CREATE TABLE part(id INTEGER PRIMARY KEY AUTOINCREMENT, task INTEGER NOT NULL, first INTEGER NOT NULL);
CREATE INDEX part_task ON part(task);
CREATE TABLE body(part INTEGER PRIMARY KEY, text BLOB NOT NULL);
CREATE VIRTUAL TABLE feature USING fts5(words, content='', contentless_delete=1, detail=none, tokenize='ascii');
INSERT INTO feature(feature, rank) VALUES('hashsize', 8388608);
CREATE TABLE vocabulary(id INTEGER PRIMARY KEY, words BLOB NOT NULL);
CREATE TRIGGER part_gone AFTER DELETE ON part BEGIN
	DELETE FROM body WHERE part = old.id;
	DELETE FROM feature WHERE rowid = old.id;
END;`

const dropText = `DROP TABLE IF EXISTS segment; DROP TABLE IF EXISTS post;
DROP TABLE IF EXISTS part; DROP TABLE IF EXISTS body; DROP TABLE IF EXISTS feature; DROP TABLE IF EXISTS vocabulary;`
