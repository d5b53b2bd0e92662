"""A server of S3's protocol in this process, which can be away for a time."""

import logging

import boto3
from moto.server import ThreadedMotoServer

SECRET = "that-no-file-may-hold"  # noqa: S105 - of a store of the tests


class S3Server:
    """Keeps its buckets while it is stopped; started again, it has the port it had.

    Parameters
    ----------
    port : int
        0 for a free one.
    """

    def __init__(self, port=0):
        logging.getLogger("werkzeug").setLevel(logging.WARNING)  # a line for each request
        self._server = ThreadedMotoServer("127.0.0.1", port, verbose=False)
        self._server.start()
        self.port = self._server.get_host_and_port()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def stop(self):
        """Refuse connections."""
        self._server.stop()

    def start(self):
        """Take connections again."""
        self._server = ThreadedMotoServer("127.0.0.1", self.port, verbose=False)
        self._server.start()

    def variables(self, folder):
        """Return the variables by which the libraries find it, and no file of the user."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": str(folder / "none"),
            "AWS_SHARED_CREDENTIALS_FILE": str(folder / "none"),
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self):
        """Return a client that knows the secret."""
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id="somebody",
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )


def stored(client, name, prefix=""):
    """Return the content of all objects of a bucket below a prefix."""
    keys = [one["Key"] for one in client.list_objects_v2(Bucket=name).get("Contents", ())]
    return {
        key.removeprefix(prefix): client.get_object(Bucket=name, Key=key)["Body"].read()
        for key in keys
        if key.startswith(prefix)
    }
