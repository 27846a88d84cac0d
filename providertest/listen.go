package providertest

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Listen serves p on a free port of this machine, for clients in other
// processes and languages. It returns the base URL, without a path, and a
// function that closes the port and ends every call that is being served.
func (p *Provider) Listen() (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.Serve(l)
	}()
	return "http://" + l.Addr().String(), func() {
		p.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if s.Shutdown(ctx) != nil {
			s.Close()
		}
		<-served
	}, nil
}
