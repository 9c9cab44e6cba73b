import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Starts the load generator; its end is an error, because its message would never come. */
export function startGenerator() {
  const generator = fork(fileURLToPath(new URL('load.mjs', import.meta.url)), { execArgv: [] })
  generator.once('exit', (code) => {
    if (code !== null && code !== 0) throw new Error(`the load generator has ended with ${code}`)
  })
  return generator
}
