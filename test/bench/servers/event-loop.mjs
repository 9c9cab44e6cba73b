/** Arguments of Node.js with which a server watches its event loop. */
export const LAG_PROBE = ['--import', new URL('lag-probe.mjs', import.meta.url).href]

/** How late the event loop of a server with these arguments has come since the last question. */
export function lagOf(child) {
  let said = ''
  const told = new Promise((resolve) => {
    const take = (chunk) => {
      said += chunk
      const line = /^lag (.+)$/m.exec(said)
      if (line === null) return
      child.stderr.off('data', take)
      resolve(JSON.parse(line[1]))
    }
    child.stderr.on('data', take)
  })
  child.kill('SIGUSR2')
  return told
}
