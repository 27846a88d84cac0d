package batch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/tripmeter/tripmeter/record"
)

// tape writes a run down to a file. A nil tape writes nothing.
type tape struct {
	*record.Recorder
	file *os.File
}

func newTape(name string) (*tape, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return &tape{record.New(f), f}, nil
}

// pictureOf is the file to which a recording of that name is drawn.
func pictureOf(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) + ".svg" }

// draw ends the recording of that name and draws it beside.
func (t *tape) draw(name string) error {
	if t == nil {
		return nil
	}
	if err := errors.Join(t.Close(), t.file.Close()); err != nil {
		return err
	}
	events, err := record.ReadFile(name)
	if err != nil {
		return err
	}
	picture := pictureOf(name)
	svg, err := os.Create(picture)
	if err != nil {
		return err
	}
	return errors.Join(record.Draw(svg, record.Options{Title: "tripmeter batch"}, record.Run{Name: strings.TrimSuffix(filepath.Base(picture), ".svg"), Events: events}), svg.Close())
}
