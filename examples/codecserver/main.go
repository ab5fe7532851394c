// Command codecserver is a codec server with the keys of TASKBRIDGE_PAYLOAD_KEYS: with it, Temporal's CLI and web UI show
// what taskbridge has encrypted. It decrypts for everybody who reaches it; put authentication in front of it before you
// have it listen on anything but a loopback address.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	"go.temporal.io/sdk/converter"

	"taskbridge/mcpbridge/codec"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8081", "address to listen on")
	origin := flag.String("origin", "http://localhost:8233", "where the web UI is, as it stands in the browser's address bar")
	flag.Parse()
	if err := serve(*listen, *origin); err != nil {
		log.Fatal(err)
	}
}

func serve(listen, origin string) error {
	keys, err := codec.ParseKeys(os.Getenv(codec.KeysVariable))
	if err != nil {
		return fmt.Errorf("%s: %w", codec.KeysVariable, err)
	}
	encryption, err := codec.NewAES(keys...)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("codec server: http://%s\n", listener.Addr())
	return http.Serve(listener, forBrowsers(origin, converter.NewPayloadCodecHTTPHandler(encryption)))
}

// forBrowsers lets pages of one origin read what a handler answers.
func forBrowsers(origin string, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Namespace")
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		handler.ServeHTTP(w, r)
	})
}
