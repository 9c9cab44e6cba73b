import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** Starts one of the servers next to this file and gives it what it asks for. */
export async function startPeer(name, given) {
  const child = fork(fileURLToPath(new URL(`${name}.mjs`, import.meta.url)), {
    env: { PATH: process.env.PATH, NODE_ENV: 'production' },
    // Whatever this process was started with is not for what is measured.
    execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const stop = () => child.kill('SIGKILL')
  process.once('exit', stop)
  let said = ''
  child.stderr.on('data', (chunk) => {
    said += chunk
  })
  child.once('exit', () => process.off('exit', stop))
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`${name} has exited with ${code}:\n${said}`)
  })
  ended.catch(() => undefined)
  if (given !== undefined) child.send(given)
  const [{ port }] = await Promise.race([once(child, 'message'), ended])
  return { port, pid: child.pid, stop, alive: () => child.exitCode === null && child.signalCode === null }
}
