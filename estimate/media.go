package estimate

import "bytes"

// Media that is not an image is priced by its length in seconds or pages, if its header
// states that length. Otherwise it is priced by the length of the payload. The figures
// err on the low side: the usage corrects an estimate that is too small.
const (
	wavBytesPerSecond        = 32_000 // 16 kHz, 16 bit, mono; used if the header cannot be read
	pcmBytesPerSecond        = 48_000 // 24 kHz, 16 bit, mono: "pcm16" of the OpenAI audio guide
	compressedBytesPerSecond = 8_000  // 64 kbit/s, usual for speech
	videoBytesPerSecond      = 50_000 // 400 kbit/s: the films of recorded requests, 2026-11

	remoteSeconds = 60 // sound or film that is only referred to

	// A document whose pages cannot be read is taken to have one for each pageBytes,
	// at most maxGuessedPages; none has more than maxPages (Anthropic PDF page: 100
	// pages a request).
	pageBytes       = 128 << 10
	maxGuessedPages = 5
	maxPages        = 100

	// A document of an office program is text, compressed and wrapped: recorded
	// requests cost 45 to 110 tokens for 5 to 20 kB (2026-11).
	officeBytesPerToken = 160

	// pageTokens prices a page where the maker of the model is not known.
	pageTokens = 1_000
)

// mediaKind is what a payload or a reference is.
type mediaKind uint8

const (
	mediaUnknown mediaKind = iota
	mediaImage
	mediaAudio
	mediaVideo
	mediaFile   // a document: PDF and the like
	mediaText   // a file of plain text
	mediaOffice // a document of an office program
)

// A part is the media of one content part while the pass is inside it. Detail, MIME type
// and the name of the part may stand before or behind the payload, so a part is priced
// when it ends.
type part struct {
	depth    int32 // of the frame that is the part; 0: none
	low      bool  // detail: low
	dropped  bool  // not read by the model
	open     bool  // a payload or a reference has been seen
	remote   bool
	pcm      bool
	hint     mediaKind // from the key around it: image_url, input_audio
	declared mediaKind // from its MIME type or format
	named    mediaKind // from the part's own type
	inURL    mediaKind // from a data URL
	format   format
	start    int // offset of the payload in the body
	bytes    int64
	rate     int64 // bytes per second, of a WAV or MP3 file
	ms       int64 // length, of a film that says it
	pages    int64 // of a PDF that says it
	w, h     int64
}

// clear forgets the payload and keeps what is known about the part.
func (p *part) clear() {
	p.open, p.remote, p.inURL, p.format = false, false, mediaUnknown, formatUnknown
	p.bytes, p.rate, p.ms, p.pages, p.w, p.h = 0, 0, 0, 0, 0, 0
}

// take reads the payload's first bytes. raw is base64 inside a JSON string.
func (p *part) take(raw []byte, start int) {
	p.open, p.start = true, start
	p.bytes = int64(len(raw)) / 4 * 3
	data := payload(raw)
	// Some encoders escape "/" and some break lines: then a bounded prefix is
	// written out plain.
	const prefix = 96 << 10
	head := raw[:min(len(raw), prefix)]
	if bytes.IndexByte(head, '\\') >= 0 {
		plain := AppendText(make([]byte, 0, len(head)), head)
		data = payload(bytes.Map(func(r rune) rune {
			if r == '\n' || r == '\r' || r == ' ' {
				return -1
			}
			return r
		}, plain))
	}
	p.format, p.w, p.h = data.header()
	switch p.format {
	case formatWAV:
		p.rate = data.wavBytesPerSecond()
	case formatAudio:
		p.rate = data.mp3BytesPerSecond()
	case formatVideo:
		p.ms = data.mp4Milliseconds()
	case formatPDF:
		p.pages = data.pdfPages()
	}
}

// kind settles what the media is: its own first bytes say it best.
func (p *part) kind() mediaKind {
	switch p.format {
	case formatPNG, formatJPEG, formatGIF, formatWebP:
		return mediaImage
	case formatPDF:
		return mediaFile
	case formatWAV, formatAudio:
		return mediaAudio
	case formatZip:
		return mediaOffice
	}
	for _, k := range [...]mediaKind{p.inURL, p.declared, p.hint, p.named} {
		if k != mediaUnknown {
			return k
		}
	}
	if p.format == formatVideo {
		return mediaVideo
	}
	return mediaFile
}

// milliseconds is how long sound or film lasts.
func (p *part) milliseconds(k mediaKind) int64 {
	perSecond := int64(compressedBytesPerSecond)
	switch {
	case p.remote:
		return remoteSeconds * 1000
	case p.ms > 0:
		return p.ms
	case k == mediaVideo:
		perSecond = videoBytesPerSecond
	case p.rate >= 1000:
		perSecond = p.rate
	case p.format == formatWAV:
		perSecond = wavBytesPerSecond
	case p.pcm:
		perSecond = pcmBytesPerSecond
	}
	return ceilDiv(p.bytes*1000, perSecond)
}

// pageCount is how many pages a document has: as it says, or by its size.
func (p *part) pageCount() int64 {
	if p.pages > 0 {
		return min(p.pages, maxPages)
	}
	return min(max(ceilDiv(p.bytes, pageBytes), 1), maxGuessedPages)
}

// textFileTokens prices a file of plain text, no higher than any other document.
func textFileTokens(size int64) int64 {
	return min(ceilDiv(size, 4), maxUnreadTokens)
}

// officeTokens prices a document of an office program.
func officeTokens(size int64) int64 {
	return min(ceilDiv(size, officeBytesPerToken), maxUnreadTokens)
}

// mimeKind reads a MIME type, or a bare format name as some interfaces use it.
func mimeKind(mime []byte) mediaKind {
	has := func(prefix string) bool {
		return len(mime) >= len(prefix) && bytes.EqualFold(mime[:len(prefix)], []byte(prefix))
	}
	switch {
	case has("image/"), has("png"), has("jpeg"), has("jpg"), has("gif"), has("webp"):
		return mediaImage
	case has("audio/"), has("wav"), has("mp3"), has("flac"), has("opus"), has("ogg"), has("pcm"), has("aac"), has("m4a"):
		return mediaAudio
	case has("video/"), has("mp4"), has("mov"), has("webm"), has("mkv"):
		return mediaVideo
	case has("text/"), has("application/json"), has("application/xml"), has("txt"), has("csv"), has("md"), has("html"):
		return mediaText
	case has("application/vnd.openxmlformats"), has("docx"), has("xlsx"), has("pptx"):
		return mediaOffice
	case has("application/"), has("pdf"), has("doc"), has("xls"):
		return mediaFile
	}
	return mediaUnknown
}

// dataURL reads a data URL (RFC 2397) that carries base64, or an image, sound or
// film in any encoding. Text that happens to begin with "data:" is none.
func dataURL(raw []byte) (k mediaKind, body []byte, ok bool) {
	const scheme, base64 = "data:", ";base64"
	if len(raw) < len(scheme) || raw[0]|0x20 != 'd' && raw[0] != '\\' {
		return mediaUnknown, nil, false // nearly every string, at a glance
	}
	var head [160]byte // longer media types are not data URLs anyone sends
	n, i := 0, 0
	for ; ; n++ {
		if i >= len(raw) || n >= len(head) {
			return mediaUnknown, nil, false
		}
		r, width := nextRune(raw[i:])
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		if r <= ' ' || r >= 0x7f || n < len(scheme) && byte(r) != scheme[n] {
			return mediaUnknown, nil, false
		}
		i += width
		if r == ',' {
			break
		}
		head[n] = byte(r)
	}
	if n < len(scheme) {
		return mediaUnknown, nil, false
	}
	mime := head[len(scheme):n]
	k = mimeKind(mime)
	if bytes.HasSuffix(mime, []byte(base64)) {
		return k, raw[i:], true
	}
	if bytes.IndexByte(mime, '/') > 0 && (k == mediaImage || k == mediaAudio || k == mediaVideo) {
		return k, raw[i:], true
	}
	return mediaUnknown, nil, false
}

// minBase64 is the length from which an unnamed string is asked whether it is
// base64. Shorter ones cost little under either name.
const minBase64 = 512

// looksBase64 reports whether a long string is base64 rather than text. It looks
// at a bounded prefix and at the end: nothing but the alphabet, with capital and
// small letters and digits all among it. A long run of one letter is text.
func looksBase64(raw []byte) bool {
	if len(raw) < minBase64 {
		return false
	}
	var upper, lower, digit bool
	head := raw[:128]
	for i := 0; i < len(head); {
		r, width := nextRune(head[i:])
		i += width
		switch {
		case 'A' <= r && r <= 'Z':
			upper = true
		case 'a' <= r && r <= 'z':
			lower = true
		case '0' <= r && r <= '9':
			digit = true
		case r == '\n' || r == '\r' || r < 128 && sextet[byte(r)] >= 0:
		default:
			if i >= len(head)-12 {
				break // an escape cut in two by the prefix
			}
			return false
		}
	}
	if !upper || !lower || !digit {
		return false
	}
	return base64End(raw)
}

// isPayload reports whether a string in a place where base64 belongs is base64,
// and not text: documents may be given either way under the same name.
func isPayload(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	head := raw[:min(len(raw), 128)]
	for i := 0; i < len(head); {
		r, width := nextRune(head[i:])
		i += width
		if r != '\n' && r != '\r' && r != '=' && (r >= 128 || sextet[byte(r)] < 0) && i < 116 {
			return false
		}
	}
	return base64End(raw)
}

// base64End looks at the last characters: the alphabet, then padding, then
// perhaps escaped line ends.
func base64End(raw []byte) bool {
	tail := raw[max(len(raw)-8, 0):]
	for _, c := range tail {
		if c != '=' && c != '\\' && sextet[c] < 0 {
			return false
		}
	}
	return true
}
