import { readFileSync } from 'node:fs'

const TICKS_PER_SECOND = 100

/** Processor seconds of a process so far; undefined where there is no /proc. */
export function processorSeconds(pid) {
  const stat = read(`/proc/${pid}/stat`)
  if (stat === undefined) return undefined
  // The name in parentheses may hold spaces: counted from its end, user and system time are fields 12 and 13.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Resident memory in MB. */
export function memory(pid) {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(read(`/proc/${pid}/status`) ?? '')?.[1]
  return kilobytes === undefined ? undefined : Number(kilobytes) / 1024
}

function read(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
