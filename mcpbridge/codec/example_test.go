package codec_test

import (
	"log"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"taskbridge/mcpbridge"
	"taskbridge/mcpbridge/codec"
)

// A front end and a worker of one's own that encrypt as taskbridge does.
func ExampleUse() {
	keys, err := codec.ParseKeys(os.Getenv(codec.KeysVariable))
	if err != nil {
		log.Fatal(err)
	}
	encryption, err := codec.NewAES(keys...)
	if err != nil {
		log.Fatal(err)
	}
	options := client.Options{HostPort: "127.0.0.1:7233"}
	codec.Use(&options, encryption)
	temporal, err := client.Dial(options)
	if err != nil {
		log.Fatal(err)
	}
	defer temporal.Close()

	w := worker.New(temporal, "builds", worker.Options{})
	if err := w.Start(); err != nil {
		log.Fatal(err)
	}
	defer w.Stop()
	bridge, err := mcpbridge.New(mcpbridge.Options{Temporal: temporal})
	if err != nil {
		log.Fatal(err)
	}
	log.Print(bridge.Tools())
}
