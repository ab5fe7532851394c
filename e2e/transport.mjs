// How the scripts of this folder reach a server.

// connector returns what makes a transport to a server: the URL of an endpoint, or a command and its arguments, which gets
// the environment of this process. The classes are those of the SDK that the transport is for.
export function connector(StreamableHTTPClientTransport, StdioClientTransport) {
  return ([target, ...args]) =>
    target.startsWith('http://')
      ? new StreamableHTTPClientTransport(new URL(target))
      : new StdioClientTransport({ command: target, args, env: process.env });
}
