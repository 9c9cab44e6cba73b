async function dewPoint({ celsius, humidity }) {
  const x = Math.log(humidity / 100) + (17.62 * celsius) / (243.12 + celsius)
  return { source: [{ name: 'computed' }], body: { celsius: Math.round((2431.2 * x) / (17.62 - x)) / 10 } }
}

export const handlers = { 'dew-point': dewPoint }
