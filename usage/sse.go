package usage

import "bytes"

// An sse takes the framing of server-sent events away: what stands behind
// "data:" goes to the scanner, an empty line ends the event. (WHATWG HTML,
// section 9.2.6: lines end in CRLF, LF or CR; one blank after the colon is not
// part of the value; lines that begin with a colon are comments; several data
// lines of one event are joined by a line feed.)
//
// Two liberties, both seen in the wild: an event whose closing empty line is
// missing at the end of the body counts, and so do several documents in one
// event.
type sse struct {
	scan *scanner

	place   ssePlace
	matched int8 // bytes of "data" the field name has matched; -1: it is another name
	cr      bool // the last byte was CR, so LF belongs to it
}

type ssePlace uint8

const (
	lineStart ssePlace = iota
	inName
	afterColon
	inData
	inOther
)

const dataName = "data"

var lineFeed = []byte{'\n'}

func (f *sse) write(p []byte) {
	// Lone CRs hardly exist. One search per write finds out.
	noCR := bytes.IndexByte(p, '\r') < 0
	for i := 0; i < len(p); {
		c := p[i]
		if f.cr {
			f.cr = false
			if c == '\n' {
				i++
				continue
			}
		}
		switch f.place {
		case inData, inOther:
			end := bytes.IndexByte(p[i:], '\n')
			if end < 0 {
				end = len(p) - i
			}
			if !noCR {
				if r := bytes.IndexByte(p[i:i+end], '\r'); r >= 0 {
					end = r
				}
			}
			if f.place == inData {
				f.scan.write(p[i : i+end])
			}
			if i += end; i < len(p) {
				f.endLine(p[i])
				i++
			}
			continue
		case lineStart, inName:
			switch {
			case c == '\n' || c == '\r':
				f.endLine(c)
			case c == ':':
				if f.place = inOther; f.matched == int8(len(dataName)) {
					f.place = afterColon
				}
			default:
				f.place = inName
				if f.matched >= 0 {
					if int(f.matched) < len(dataName) && c == dataName[f.matched] {
						f.matched++
					} else {
						f.matched = -1
					}
				}
			}
			i++
		case afterColon:
			f.place = inData
			if c == ' ' {
				i++
			}
		}
	}
}

// endLine ends a line with the byte c, CR or LF.
func (f *sse) endLine(c byte) {
	f.cr = c == '\r'
	switch f.place {
	case lineStart:
		// An empty line. A document that is not over by now never will be.
		f.scan.reset()
	case inData, afterColon:
		f.scan.write(lineFeed)
	}
	f.place, f.matched = lineStart, 0
}
