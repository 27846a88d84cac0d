package batchfile

import (
	"bufio"
	"bytes"
	"io"
)

// Lines reads a file line by line in bounded memory.
type Lines struct {
	r   *bufio.Reader
	buf []byte
	at  int64 // bytes read, the ends of lines included
}

// NewLines leaves out the byte order mark that some editors put in front.
func NewLines(r io.Reader) *Lines {
	l := &Lines{r: bufio.NewReaderSize(r, 256<<10)}
	if mark, _ := l.r.Peek(len(bom)); string(mark) == bom {
		l.r.Discard(len(bom))
		l.at = int64(len(bom))
	}
	return l
}

const bom = "\uFEFF"

// Next returns a line without its end. It is valid until the next call. Of a
// line above MaxLine it returns the beginning, and long. The last line comes
// with io.EOF, and may be empty.
func (l *Lines) Next() (line []byte, long bool, err error) {
	l.buf = l.buf[:0]
	for {
		piece, err := l.r.ReadSlice('\n')
		l.at += int64(len(piece))
		if err == nil && len(l.buf) == 0 {
			return trim(piece), false, nil // as it lies in the buffer
		}
		if len(l.buf)+len(piece) <= MaxLine {
			l.buf = append(l.buf, piece...)
		} else {
			long = true
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		return trim(l.buf), long, err
	}
}

func trim(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// At is how many bytes of the file the lines so far take up.
func (l *Lines) At() int64 { return l.at }
