// prettier-ignore
const NUMERALS = [
  ['M', 1000], ['CM', 900], ['D', 500], ['CD', 400], ['C', 100], ['XC', 90], ['L', 50],
  ['XL', 40], ['X', 10], ['IX', 9], ['V', 5], ['IV', 4], ['I', 1],
]
const source = [{ name: 'computed' }]

async function roman({ number }) {
  let [rest, text] = [number, '']
  for (const [numeral, value] of NUMERALS) for (; rest >= value; rest -= value) text += numeral
  return { source, body: { number, roman: text } }
}

async function dice({ sides, rolls }, { random }) {
  // A byte above the largest multiple of `sides` would make low numbers more likely.
  const fair = 256 - (256 % sides)
  const roll = () => {
    for (;;) {
      const [byte] = random(1)
      if (byte < fair) return 1 + (byte % sides)
    }
  }
  return { source, body: { sides, rolls: Array.from({ length: rolls }, roll) } }
}

export const handlers = { roman, dice }
