import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** Starts one of the servers beside this file and gives it what it asks for. */
export async function startPeer(name, given) {
  const child = fork(fileURLToPath(new URL(`${name}.mjs`, import.meta.url)), {
    env: { PATH: process.env.PATH, NODE_ENV: 'production' },
  })
  if (given !== undefined) child.send(given)
  const [{ port }] = await once(child, 'message')
  return { port, pid: child.pid, stop: () => child.kill('SIGKILL') }
}
