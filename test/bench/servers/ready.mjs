/** Listens on a free port and says which. */
export function ready(server) {
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }))
}

/** Resolves to what the measurement has for this server. */
export function given() {
  return new Promise((resolve) => {
    process.once('message', resolve)
  })
}
