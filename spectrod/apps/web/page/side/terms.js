/** Words of the page that need a sentence: as tooltips where they stand, and all in the help. */

export const TERMS = Object.freeze({
  peaks: "Frequency and level of a tone between the bins, by the transform of the window. Listed once it has been there for a second.",
  cursors: "Frequency and level of the bin that the cursor stands on: up to 1.4 dB (Hann) below the peak of a tone between two bins.",
  "≈": "Read from the screen, which may show several bins as one, until the server has measured.",
  note: "Nearest note of equal temperament, A4 = 440 Hz, and the distance from it in cents (ct), hundredths of a semitone.",
  epoch: "Number of this start of the daemon. Another number means that the daemon was restarted.",
  missed: "Messages that were lost between the daemon and the server of this page.",
  gaps: "Places in the sound where samples are missing, and how many.",
  overflows: "Losses of samples that the sound system has flagged.",
  "suspected losses": "Losses of samples that nothing flagged, found by counting samples against the clock.",
  "dropped by the daemon": "Spectra that the daemon dropped because its queue was full.",
  "dropped for this page": "Rows that the server did not send because this page or its line was too slow.",
  clipped: "Samples at full scale, which were louder than the input can take.",
  "sample clock": "Error of the sample rate against this computer's clock: 100 ppm are 8.6 s a day.",
  clock: "Difference between the clocks of the daemon and of the server of this page.",
  engine: "What computes the spectra: a device of OpenCL, or NumPy.",
  calibration: "Name of the calibration of this channel. Without one levels are relative to full scale (dBFS), not sound pressure.",
});
