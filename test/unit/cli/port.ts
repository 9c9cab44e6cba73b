import t from 'tap'
import { openPort } from '../../../src/cli/port.ts'
import { createHttpServer } from '../../../src/engine/http/server.ts'

t.test('explains why a port is unavailable', async (t) => {
  const first = createHttpServer()
  const port = await openPort(first, 0, '127.0.0.1')
  t.teardown(() => first.close())
  await t.rejects(openPort(createHttpServer(), port, '127.0.0.1'), {
    message: `port ${port} is in use: stop what listens there, or choose another with --port`,
  })
  await t.rejects(openPort(createHttpServer(), 0, '192.0.2.1'), {
    message: 'HOST 192.0.2.1 is not an address of this machine',
  })
})
